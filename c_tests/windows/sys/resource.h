/* Empty: Windows needs nothing of it. */
