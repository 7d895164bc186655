"""The tests of Shiftboss."""
