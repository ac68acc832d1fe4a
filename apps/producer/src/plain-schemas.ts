// zod's generated code for schemas costs a short call more than it saves: 2 to 7 of some 100 ms. zod reads this setting
// when it is loaded; `config({ jitless: true })` is too late for schemas that modules make while they load.
Object.assign(globalThis, { __zod_globalConfig: { jitless: true } });
