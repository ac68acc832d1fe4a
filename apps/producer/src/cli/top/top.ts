import { setTimeout as delay } from 'node:timers/promises';
import type { FleetLoad } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { jsonFlag } from '../command-flags.ts';
import type { Context } from '../context.ts';
import { canShowFullScreen, type ScreenControls, showFullScreen } from '../full-screen.ts';
import type { CliOutput } from '../terminal.ts';
import { parseDuration } from '../units.ts';
import { drawLoad } from './draw-load.ts';
import { LoadScreen } from './load-screen.ts';

const LEAST_INTERVAL_MS = 250;
/** Node's timers take at most 24 days, and end at once if they are given more. */
const MOST_INTERVAL_MS = 86_400_000;
const ALL = { height: Number.POSITIVE_INFINITY, width: Number.POSITIVE_INFINITY };

interface Flags {
  once?: boolean;
  interval: number;
  json?: boolean;
}

export function registerTop(program: Command, context: Context): void {
  program
    .command('top')
    .description('show hosts, tenants and what waits, live; q or Ctrl-C ends it. In a pipe: one snapshot per interval')
    .addOption(new Option('--once', 'print one snapshot, and end').env('SHELLFLEET_TOP_ONCE'))
    .addOption(
      new Option('--interval <time>', 'time between two snapshots: 500ms, 10s')
        .argParser(parseInterval)
        .default(2_000, '2s')
        .env('SHELLFLEET_TOP_INTERVAL'),
    )
    .addOption(jsonFlag())
    .action((flags: Flags) => top(context, flags));
}

/** Parses an interval. One that is too short or too long becomes the nearest possible one. */
export const parseInterval = (text: string): number =>
  Math.min(MOST_INTERVAL_MS, Math.max(LEAST_INTERVAL_MS, parseDuration(text)));

async function top(context: Context, { once = false, interval: everyMs, json = false }: Flags): Promise<void> {
  await context.withFleet(async (fleet) => {
    const { terminal } = context;
    if (!once && !json && canShowFullScreen(context.config)) {
      const read = () => fleet.load();
      const show = (controls: ScreenControls) => new LoadScreen(controls, { read, everyMs, colors: terminal.colors });
      return context.setExitCode(await showFullScreen(terminal, show));
    }
    await printLoad(terminal, await fleet.load(), json);
    while (!once && !terminal.readerGone.aborted) {
      await delay(everyMs, undefined, { signal: terminal.readerGone }).catch(() => {});
      if (!json) await terminal.line('');
      await printLoad(terminal, await fleet.load(), json);
    }
  });
}

async function printLoad(terminal: CliOutput, load: FleetLoad, json: boolean): Promise<void> {
  if (json) return terminal.json(load);
  for (const { text } of drawLoad(load, ALL)) await terminal.line(text);
}
