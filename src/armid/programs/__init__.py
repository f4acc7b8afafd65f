"""A motion as a program for the robot's own controller: UR, Franka, KUKA, ROS 2, or a plain table."""
