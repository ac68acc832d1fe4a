// The process of one call, or of one module's description. Code that loads before a call uses `getBuiltinModule`: an
// `import` of Node's modules creates all their exports (8 ms of processor time).

// biome-ignore lint/plugin: not a setting. Node has read it already, and the tool must not inherit it.
delete process.env.NODE_COMPILE_CACHE;
await import('./answer-request.ts');
