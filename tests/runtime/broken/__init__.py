"""An app whose tasks cannot be imported."""
