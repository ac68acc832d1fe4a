#!/usr/bin/env node
import { runCli } from './cli/program.ts';
import { readConfig } from './config.ts';

process.exitCode = await runCli(process.argv.slice(2), readConfig(process.env));
