// The process of one call, or of the description of one module.

// biome-ignore lint/plugin: not a setting. Node has read it, and it is not for the tool nor for the processes that the tool starts.
delete process.env.NODE_COMPILE_CACHE;
await import('./answer-request.ts');
