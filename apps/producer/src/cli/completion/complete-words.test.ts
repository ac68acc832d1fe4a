import { describe, expect, test } from 'vitest';
import { readCliConfig } from '../../config.ts';
import { createProgram } from '../program.ts';
import { CliOutput } from '../terminal.ts';
import { loadVerbs } from '../verbs.ts';
import { completeWords } from './complete-words.ts';

const config = readCliConfig({}, false);
const program = createProgram(config, new CliOutput(config), await loadVerbs(), () => {});
const complete = (words: string[]) => {
  const { candidates, wants, prefix } = completeWords(program, words);
  return { values: candidates.map(({ value }) => value), wants, prefix };
};

describe('completion', () => {
  test.each<[string, string[], string[]]>([
    ['a verb', ['re'], ['restart']],
    ['a verb behind flags of the program', ['--tenant', 'exec', 'ev'], ['events']],
    ['a verb of a verb', ['hosts', ''], ['cordon', 'drain', 'invite', 'ls', 'rm', 'uncordon']],
    ['a flag of a verb', ['exec', '--sta'], ['--startup', '--start-deadline']],
    ['a flag behind the session', ['exec', 's', '--cp'], ['--cpus']],
    ['a flag of the program behind a verb', ['ps', '--name'], ['--namespace']],
    ['the help', ['down', '--he'], ['--help']],
    ['the values of a flag', ['ps', '--state', 'c'], ['closing', 'closed']],
    ['the value behind an equals sign', ['ps', '--state=los'], ['--state=lost']],
    ['the value behind an equals sign, which bash takes for a word', ['ps', '--state', '=', 'los'], ['lost']],
    ['the values behind it', ['logs', '--stream', '='], ['stdout', 'stderr']],
    ['an argument with choices', ['completion', 'z'], ['zsh']],
    ['no flag of ours in a script', ['exec', 's', 'ls', '--'], []],
    ['no flag behind the dashes', ['exec', 's', '--', '--'], []],
    ['no hidden verb', ['__'], []],
    ['no hidden flag', ['exec', '--tt'], []],
  ])('completes %s', (_what, words, values) => {
    expect(complete(words)).toMatchObject({ values, wants: undefined });
  });

  test.each<[string, string[], string | undefined, string]>([
    ['the session of exec', ['exec', 'bu'], 'session', 'bu'],
    ['the session behind flags with values', ['exec', '--memory', '1g', '-e', 'A=b', 'bu'], 'session', 'bu'],
    ['each session of close', ['close', 'a', 'b', ''], 'session', ''],
    ['a command or session', ['logs', 's'], 'session', 's'],
    ['a running command', ['cancel', ''], 'command', ''],
    ['the beginning of a path in a session', ['cp', './a', 's'], 'session-path', 's'],
    ['a host', ['hosts', 'drain', 'h'], 'host', 'h'],
    ['a tool', ['tools', 'call', ''], 'tool', ''],
    ['nothing of the fleet for a script', ['exec', 's', ''], undefined, ''],
    ['nothing of the fleet for a value', ['exec', '--image', 's'], undefined, 's'],
    ['nothing behind a colon, which bash takes for a word', ['cp', 's', ':', '/wo'], undefined, ''],
    ['the second path, behind one that bash cut', ['cp', 's', ':', '/work', ''], 'session-path', ''],
    ['nothing behind the last argument', ['restart', 's', ''], undefined, ''],
  ])('asks for %s', (_what, words, wants, prefix) => {
    expect(complete(words)).toEqual({ values: [], wants, prefix });
  });
});
