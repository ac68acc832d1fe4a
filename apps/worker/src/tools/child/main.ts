// The process of one call, or of the description of one module.
//
// The modules of this folder take those of Node with `process.getBuiltinModule`, where they load before a call: an `import` of one makes all of
// its exports, also those that load further modules (8 ms of processor time).

// biome-ignore lint/plugin: not a setting. Node has read it, and it is not for the tool nor for the processes that the tool starts.
delete process.env.NODE_COMPILE_CACHE;
await import('./answer-request.ts');
