"""An app whose handlers tell what they should not."""
