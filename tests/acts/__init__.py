"""What people do, through every door, and what it leaves."""
