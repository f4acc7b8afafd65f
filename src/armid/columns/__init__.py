"""What do the columns of this table mean? A mapping drafted from names, ranges and physics."""
