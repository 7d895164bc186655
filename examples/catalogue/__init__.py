"""An example project: a catalogue of real source code, made by jobs."""
