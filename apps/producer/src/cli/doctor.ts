import type { Command } from 'commander';
import { examine } from '../fleet-process/doctor.ts';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';

/** Registers `doctor`. Its exit code is 1 when a part is missing that only the user can supply. */
export function registerDoctor(program: Command, { config, terminal, setExitCode }: Context): void {
  program
    .command('doctor')
    .description('examine this machine and the fleet, with a fix for each problem')
    .addOption(jsonFlag())
    .action(async ({ json }: { json?: boolean }) => {
      const findings = await examine(config.env);
      if (findings.some(({ state }) => state === 'missing')) setExitCode(1);
      if (json) {
        for (const finding of findings) await terminal.json(finding);
        return;
      }
      const rows = findings.map(({ name, state, detail, fix }) => [
        state,
        name,
        fix ? `${detail}. Fix: ${fix}` : detail,
      ]);
      await terminal.table(rows);
    });
}
