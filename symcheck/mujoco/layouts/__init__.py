"""Layouts of observations and actions of robots: named terms, joint orders, histories, and how a mirror moves them."""
