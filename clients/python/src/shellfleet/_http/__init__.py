"""HTTP/1.1 over asyncio streams: connections, their pool, calls of the API with retries, and server-sent events."""
