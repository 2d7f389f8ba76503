"""What compactions find out and tell about the keys they see."""
