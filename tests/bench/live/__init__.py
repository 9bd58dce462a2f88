"""The bench on a real Infrahub: what people use today beside us, and the bare server beside our whole apply."""
