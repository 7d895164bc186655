"""A project that connects receivers to Django's signals where Django says that one should."""
