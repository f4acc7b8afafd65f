"""The 2 x 2 study of [Kolyubin2017] fig. 6: nominal or calibrated kinematics x random way-points or optimised motion."""
