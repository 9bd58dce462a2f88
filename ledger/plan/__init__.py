"""The plan artifact: format, writer, reader, verification, review.."""
