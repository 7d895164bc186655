"""The catalogue as a Django app."""

from django.apps import AppConfig


class CatalogueConfig(AppConfig):
    """`catalogue` in INSTALLED_APPS."""

    name = "catalogue"
    default_auto_field = "django.db.models.BigAutoField"
