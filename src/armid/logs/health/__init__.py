"""Health: does a log say what it claims?"""
