"""A project without the console."""

urlpatterns: list[object] = []
