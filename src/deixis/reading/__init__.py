"""Safe reading: every file a user hands over comes in here, judged by size and shape before anything is built from it.

Whatever is wrong with a file becomes a :class:`~deixis.errors.BadFileError` that names it. Nothing is ever unpickled,
only regular files are read (no pipe, no device), and what is packed may unpack to a stated multiple of its size.
"""
