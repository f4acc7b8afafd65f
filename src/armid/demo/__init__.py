"""The whole story on the embedded robot."""
