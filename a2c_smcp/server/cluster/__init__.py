"""Several server processes as one system, on NATS. Needs the extra `cluster`; imported only where it is asked for."""
