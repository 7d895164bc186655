"""An app whose tasks ask for what nobody has declared."""
