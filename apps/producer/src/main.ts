#!/usr/bin/env node
import { useCompileCache } from './compile-cache.ts';
import { exitWhenWritten } from './end-process.ts';
import './plain-schemas.ts';

const [noun, verb] = process.argv.slice(2);
// Loading the program takes longer than somebody needs to open the file.
if (noun === 'hosts' && verb === 'invite') (await import('./hide-invitation.ts')).hideInvitation();
useCompileCache(process.env);
// Imported only after the cache is enabled, so that the cache serves this module too.
const { start } = await import('./start.ts');
await exitWhenWritten(await start(process.argv.slice(2), process.env));
