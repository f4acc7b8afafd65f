"""The embedded robot: MuJoCo physics, a controller, sensors with stated errors, logs and the truth."""
