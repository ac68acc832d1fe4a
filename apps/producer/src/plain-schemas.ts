// A call of the command line checks few values, so the code that zod generates for a schema at its first use costs more
// than it saves: 2 to 7 of some 100 ms of processor time. zod reads this setting when it is loaded. `config({ jitless:
// true })` would be too late for schemas that are made while the modules load.
Object.assign(globalThis, { __zod_globalConfig: { jitless: true } });
