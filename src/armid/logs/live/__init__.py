"""Samples of a live arm: text on stdin, datagrams, or the controller's own protocol."""
