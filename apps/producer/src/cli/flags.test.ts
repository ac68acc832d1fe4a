import type { Command, Option } from 'commander';
import { expect, test } from 'vitest';
import { readConfig } from '../config.ts';
import { createProgram } from './program.ts';
import { Terminal } from './terminal.ts';

const terminal = new Terminal(readConfig({}, false));
const program = (env: NodeJS.ProcessEnv) => createProgram(readConfig(env, false), terminal, () => {});

const verbsOf = (verb: Command): Command[] => [verb, ...verb.commands.flatMap(verbsOf)];

/** Every flag that a variable sets. */
function flagsOf(root: Command): { verb: string; option: Option; variable: string }[] {
  return verbsOf(root).flatMap((verb) =>
    verb.options.flatMap((option) => (!option.envVar ? [] : [{ verb: verb.name(), option, variable: option.envVar }])),
  );
}

const switchesOn = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(
    Object.keys(env).map((name) => [name, flagsOf(program(env)).some(({ variable }) => variable === name)]),
  );

const ON = { SHELLFLEET_JSON: '1', SHELLFLEET_DETACH: '1', SHELLFLEET_UP_DETACH: '1', SHELLFLEET_PS_ALL: '1' };

test('flags of several verbs that share a variable have one name and one meaning', () => {
  const meanings = new Map<string, Set<string>>();
  for (const { option, variable } of flagsOf(program(ON))) {
    const meaning = `${option.long}: ${option.description}`;
    meanings.set(variable, (meanings.get(variable) ?? new Set()).add(meaning));
  }
  expect(meanings.size).toBeGreaterThan(20);
  expect([...meanings].filter(([, names]) => names.size > 1)).toEqual([]);
});

test.each(['0', 'false', 'no', 'off', 'OFF', ''])('every switch is off when its variable is %j', (value) => {
  const off = Object.fromEntries(Object.keys(ON).map((name) => [name, value]));
  expect(switchesOn(off)).toEqual(Object.fromEntries(Object.keys(ON).map((name) => [name, false])));
  expect(switchesOn(ON)).toEqual(Object.fromEntries(Object.keys(ON).map((name) => [name, true])));
});
