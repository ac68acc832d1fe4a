import { expect, test } from 'vitest';
import { parseSurroundings } from './parse-surroundings.ts';

const MARK = 'ab12';
const parse = (text: string | Buffer, mark = MARK) => parseSurroundings(Buffer.from(text), mark);
const printed = (cwd: string, ...pairs: string[]) => [MARK, `${cwd}\n`, ...pairs, MARK, ''].join('\0');
const envOf = (...pairs: string[]) => parse(printed('/', ...pairs))?.env;

test('reads the directory and the variables, whatever bytes are in them', () => {
  expect(parse(`noise\n${printed('/a b\nc', 'A=1=2', 'B=', "C='x'\n$(y)", 'UMLAUT=ä\u{1f600}')}late`)).toEqual({
    cwd: '/a b\nc',
    env: { A: '1=2', B: '', C: "'x'\n$(y)", UMLAUT: 'ä\u{1f600}' },
  });
});

test('leaves out what chooses programs and libraries, what a shell reads or does, and functions (S3-25)', () => {
  const dropped = [
    'PATH',
    'ENV',
    'BASH_ENV',
    'LD_PRELOAD',
    'LD_LIBRARY_PATH',
    'LD_X',
    'IFS',
    'PS4',
    'CDPATH',
    'SHELLOPTS',
  ];
  const shells = ['BASHOPTS', 'BASH_XTRACEFD', 'PROMPT_COMMAND', 'GCONV_PATH', '_', 'PWD', 'OLDPWD', 'UID', '__sf_dir'];
  const own = ['CODEX_HOME', 'CODEX_SANDBOX', 'CODEX_SANDBOX_NETWORK_DISABLED'];
  const functions = ['BASH_FUNC_git%%=() { echo; }', 'BASH_FUNC_ls()=() { :; }', 'a-b=1', '1A=1', '=x', 'none'];
  const given = [...dropped, ...shells, ...own].map((name) => `${name}=/workspace/x`);
  expect(envOf(...given, ...functions, 'HOME=/workspace', 'PATHS=1')).toEqual({ HOME: '/workspace', PATHS: '1' });
});

test('leaves out a value that is no text', () => {
  const bytes = Buffer.concat([Buffer.from(`${MARK}\0/\n\0A=`), Buffer.from([0xff]), Buffer.from(`\0B=2\0${MARK}\0`)]);
  expect(parse(bytes)).toEqual({ cwd: '/', env: { B: '2' } });
});

test.each([
  ['nothing', ''],
  ['no end', `${MARK}\0/\n\0A=1\0`],
  ['another mark', printed('/', 'A=1').replaceAll(MARK, 'zz')],
  ['no directory', printed('', 'A=1')],
  ['a relative directory', printed('a', 'A=1')],
  ['a directory that is too long', printed(`/${'a'.repeat(4_096)}`, 'A=1')],
  [
    'a directory that is no text',
    Buffer.concat([Buffer.from(`${MARK}\0/`), Buffer.from([0xff]), Buffer.from(`\n\0${MARK}\0`)]),
  ],
  ['half a variable', `${MARK}\0/\n\0A=1${MARK}\0`],
])('reads nothing from %s', (_what, text) => {
  expect(parse(text)).toBeUndefined();
});
