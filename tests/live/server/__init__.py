"""A real Infrahub server on loopback, from package registries: Neo4j, Prefect and the API, without containers."""
