// A call checks few values, so the code that zod generates for a schema at its first use costs more than it saves. zod looks here when it is
// loaded, and in the bundle all schemas are made then: `config({ jitless: true })` would come after them.
Object.assign(globalThis, { __zod_globalConfig: { jitless: true } });
