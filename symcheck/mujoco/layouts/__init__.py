"""Layouts of robot observations and actions: named terms, joint orders, histories, and their mirror images."""
