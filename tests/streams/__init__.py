"""Many readers of the event stream during a long apply, with the server restarted; by ``make streams``."""
