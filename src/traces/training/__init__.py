"""What training does with gradients, and a training whole."""
