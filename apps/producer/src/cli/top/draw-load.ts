import type { FleetLoad, HostInfo } from '@shellfleet/client';
import { toPrintable } from '@shellfleet/protocol';
import { stateOf, whyClosed } from '../describe-host.ts';
import { describeSize } from '../units.ts';
import { type Column, cutRow, fitTable } from './fit-table.ts';

/** A row of the screen. `bad`: something that an operator may have to act on. */
export interface LoadRow {
  text: string;
  tone: 'plain' | 'head' | 'bad';
}

interface Section {
  columns: Column[];
  /** Tone of each row. */
  tones: LoadRow['tone'][];
  /** Name of the things that the rows show, in the plural. */
  what: string;
}

/** Draws a load in at most `height` rows of at most `width` columns. Sections without rows are left out. */
export function drawLoad(load: FleetLoad, { height, width }: { height: number; width: number }): LoadRow[] {
  const summary = summarize(load).map((text): LoadRow => ({ text: cutRow(text, width), tone: 'plain' }));
  const sections = [toHosts(load), toTenants(load), toReasons(load)].filter(({ tones }) => tones.length > 0);
  const lengths = sections.map(({ tones }) => tones.length);
  // Each section has an empty row and its titles in addition.
  const shares = shareRows(lengths, height - summary.length - 2 * sections.length);
  const drawn = sections.flatMap((section, at) => drawSection(section, shares[at] ?? 0, width));
  return [...summary, ...drawn].slice(0, Math.max(0, height));
}

function drawSection({ columns, tones, what }: Section, rows: number, width: number): LoadRow[] {
  const isCut = rows < tones.length;
  const [titles = '', ...texts] = fitTable(columns, width);
  const shown = texts.slice(0, isCut ? Math.max(0, rows - 1) : rows);
  const more = `… ${tones.length - shown.length} more ${what}`;
  return [
    { text: '', tone: 'plain' },
    { text: titles, tone: 'head' },
    ...shown.map((text, at): LoadRow => ({ text, tone: tones[at] ?? 'plain' })),
    ...(isCut ? [{ text: cutRow(more, width), tone: 'plain' } as const] : []),
  ];
}

/** Shares rows between sections. A section that needs less than an equal part leaves the rest to the others. */
export function shareRows(lengths: readonly number[], rows: number): number[] {
  const shares = lengths.map(() => 0);
  let left = Math.max(0, rows);
  const order = lengths.map((length, at) => ({ length, at })).sort((a, b) => a.length - b.length);
  for (const [index, { length, at }] of order.entries()) {
    const share = Math.min(length, Math.floor(left / (order.length - index)));
    shares[at] = share;
    left -= share;
  }
  return shares;
}

function summarize({ at, hosts, sessions, commandsPerSecond }: FleetLoad): string[] {
  const states = ['up', 'draining', 'unreachable'] as const;
  const counted = states.flatMap((state) => {
    const count = hosts.filter((host) => host.state === state).length;
    return count === 0 ? [] : [`${count} ${state}`];
  });
  return [
    `${at.slice(11, 19)}Z  hosts: ${counted.join(', ') || 'none'}  ${commandsPerSecond.toFixed(1)} commands/s`,
    `sessions: ${sessions.held} hold a slot, ${sessions.running} run a command, ${sessions.waiting} wait for a slot`,
  ];
}

function toHosts({ hosts }: FleetLoad): Section {
  const number = (title: string, leftOut: number, of: (host: HostInfo) => string): Column => ({
    ...{ title, leftOut, isNumber: true },
    cells: hosts.map((host) => (host.state === 'unreachable' ? '-' : of(host))),
  });
  const percent = (value: number | null | undefined) => (value == null ? '-' : `${value.toFixed(1)} %`);
  const reasons = hosts.map((host) => toPrintable(whyClosed(host)));
  return {
    what: 'hosts',
    tones: hosts.map(({ state }, at) => (state === 'unreachable' || reasons[at] !== '' ? 'bad' : 'plain')),
    columns: [
      { title: 'HOST', cells: hosts.map(({ id }) => toPrintable(id)) },
      { title: 'STATE', cells: hosts.map(stateOf) },
      number('SLOTS', 4, ({ slots }) => String(slots)),
      number('FREE', 1, ({ free }) => String(free)),
      number('RUNNING', 5, ({ running }) => String(running)),
      number('COMMANDS/S', 6, ({ commandsPerSecond }) => commandsPerSecond.toFixed(1)),
      number('FREE MEMORY', 2, ({ gate }) => (gate === undefined ? '-' : describeSize(gate.freeMemoryBytes))),
      number('MEMORY WAITS', 3, ({ gate }) => percent(gate?.memoryPressure)),
      number('DISK WAITS', 7, ({ gate }) => percent(gate?.ioPressure)),
      ...(reasons.every((reason) => reason === '') ? [] : [{ title: 'TAKES NOTHING NEW BECAUSE', cells: reasons }]),
    ],
  };
}

function toTenants({ tenants }: FleetLoad): Section {
  return {
    what: 'tenants',
    tones: tenants.map(() => 'plain'),
    columns: [
      { title: 'TENANT', cells: tenants.map(({ tenant }) => toPrintable(tenant)) },
      { title: 'HOLDS', isNumber: true, cells: tenants.map(({ held }) => String(held)) },
      { title: 'WAITS', isNumber: true, cells: tenants.map(({ waiting }) => String(waiting)) },
    ],
  };
}

function toReasons({ waiting }: FleetLoad): Section {
  return {
    what: 'reasons',
    tones: waiting.map(() => 'plain'),
    columns: [
      { title: 'WAIT', isNumber: true, cells: waiting.map(({ sessions }) => String(sessions)) },
      { title: 'BECAUSE', cells: waiting.map(({ reason }) => toPrintable(reason)) },
    ],
  };
}
