(careful)
