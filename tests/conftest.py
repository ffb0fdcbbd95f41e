import signal

# Processes that a shell starts in the background ignore SIGINT, and so would all that a test starts. A handler of our
# own does not go over to them: they begin with the default.
signal.signal(signal.SIGINT, signal.default_int_handler)
