#!/usr/bin/env node
import { useCompileCache } from './compile-cache.ts';
import './plain-schemas.ts';

useCompileCache(process.env);
// Imported only now, so that the cache serves them.
const [{ readConfig }, { runCli }] = await Promise.all([import('./config.ts'), import('./cli/program.ts')]);
process.exitCode = await runCli(process.argv.slice(2), readConfig(process.env));
