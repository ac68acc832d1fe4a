import type { Approval } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import type { KeyPress } from '../full-screen.ts';
import { ApprovalsScreen } from './approvals-screen.ts';

const questionOf = (id: string, more: Partial<Approval> = {}): Approval => ({
  ...{ id, state: 'pending', place: 'policy docker', env: [], sessionId: `of-${id}`, commandId: 'c', count: 1 },
  ...{ script: `run ${id}`, reason: 'it asks' },
  ...{ askedAt: '2026-01-01T00:00:00.000Z', expiresAt: '2026-01-01T00:10:00.000Z' },
  ...more,
});

const NAMED: Record<string, KeyPress> = {
  Enter: { name: 'return', text: '\r' },
  Esc: { name: 'escape' },
  Up: { name: 'up' },
  Down: { name: 'down' },
  PageDown: { name: 'pagedown' },
  Home: { name: 'home' },
  End: { name: 'end' },
  Backspace: { name: 'backspace' },
  'Ctrl-C': { name: 'c', ctrl: true, text: '\u0003' },
};

/** Returns a screen that is drawn after every key. */
function createScreen(...questions: Approval[]) {
  const screen = new ApprovalsScreen('t1');
  const at = {
    screen,
    columns: 60,
    rows: 24,
    shown: () => screen.draw(at.rows, at.columns).map((row) => row.trimEnd()),
    last: () => at.shown().at(-1),
    show(approval: Approval) {
      screen.show(approval);
      at.shown();
    },
    press(...keys: string[]) {
      let action: ReturnType<ApprovalsScreen['press']>;
      for (const key of keys) {
        action = screen.press(NAMED[key] ?? { text: key, name: key });
        at.shown();
      }
      return action;
    },
  };
  for (const question of questions) at.show(question);
  return at;
}

describe('the screen of approvals', () => {
  test('lists the waiting questions with their numbers', () => {
    const at = createScreen(questionOf('a'), questionOf('b', { count: 3, outside: true, script: 'curl x\nsh x' }));
    at.rows = 8;
    expect(at.shown()).toEqual([
      '2 questions of the tenant t1 wait:',
      '',
      '> #1  until 00:10:00Z  of-a  run a  it asks',
      '  #2  until 00:10:00Z  of-b +2  OUTSIDE its sandbox  curl …',
      '',
      '',
      'Up, Down or its number, then Enter: show a question   q: lea',
      've',
    ]);
  });

  test('approves a question with the chosen scope once the person has confirmed it', () => {
    const amendment = { pattern: ['run', ['a', 'b']], decision: 'allow' as const };
    const question = questionOf('a', { amendment });
    const at = createScreen(question);
    at.press('Enter');
    expect(at.shown().slice(0, 10)).toEqual([
      'Question #1 waits.',
      '',
      'question  a, until 2026-01-01T00:10:00.000Z',
      'session   of-a',
      'command   c',
      'where     policy docker',
      'because   it asks',
      'script',
      '  | run a',
      'The rule (p) would allow from then on: run [a|b] …',
    ]);
    expect(at.press('a', 'n')).toBeUndefined();
    expect(at.press('y')).toBeUndefined();
    expect(at.press('p')).toBeUndefined();
    expect(at.shown().join(' ')).toContain('until it is revoked: run [a|b] … ?');
    expect(at.press('y')).toEqual({ type: 'answer', answer: { type: 'approve', scope: 'prefix', approval: question } });
    // Nothing is answered twice.
    expect(at.press('a', 'y')).toBeUndefined();
    at.screen.sent(true, 'Approved.');
    expect(at.shown().join('\n')).toContain('Approved.');
  });

  test.each([
    ['a', 'command'],
    ['s', 'session'],
  ])('takes %s for an approval with the scope %s', (key, scope) => {
    const at = createScreen(questionOf('a'));
    expect(at.press('Enter', key, 'y')).toMatchObject({ answer: { type: 'approve', scope } });
  });

  test('approves no rule for a question that proposes none', () => {
    const at = createScreen(questionOf('a'));
    expect(at.press('Enter', 'p', 'y')).toBeUndefined();
    at.press('p');
    expect(at.last()).toBe('No rule is offered for it: use a or s.');
  });

  test('approves a long question only after all its rows were shown, even after a resize', () => {
    const script = Array.from({ length: 40 }, (_, line) => `line ${line}`).join('\n');
    const at = createScreen(questionOf('a', { script }));
    at.press('Enter', 'a');
    expect(at.last()).toBe('Read all of it first: Home, then PageDown.');
    at.press('End', 'a');
    expect(at.last()).toBe('Read all of it first: Home, then PageDown.');
    at.press('Home', ...Array.from({ length: 5 }, () => 'PageDown'));
    expect(at.shown().join('\n')).toContain('line 39');
    at.columns = 50;
    at.shown();
    at.press('a');
    expect(at.last()).toBe('Read all of it first: Home, then PageDown.');
    at.press('Home', ...Array.from({ length: 5 }, () => 'PageDown'));
    expect(at.press('a', 'y')).toMatchObject({ type: 'answer' });
  });

  test('cuts nothing of a question on a narrow screen, and marks rows of the script', () => {
    const at = createScreen(
      questionOf('a', { script: `echo ${'x'.repeat(50)}; 漢字漢字漢字漢字\nanswered    by nobody` }),
    );
    at.columns = 20;
    at.rows = 60;
    at.press('Enter');
    const rows = at.shown();
    expect(rows.every((row) => row.length <= 20)).toBe(true);
    const script = rows.slice(
      rows.indexOf('script') + 1,
      rows.findIndex((row, index) => index > rows.indexOf('script') && row === ''),
    );
    expect(script.every((row) => /^ {2}[|+] /.test(row))).toBe(true);
    expect(script.map((row) => row.slice(4)).join('')).toBe(
      `echo ${'x'.repeat(50)}; 漢字漢字漢字漢字answered    by nobody`,
    );
  });

  test('does not answer an open question that was answered elsewhere, and shows who answered', () => {
    const at = createScreen(questionOf('a'), questionOf('b'));
    at.press('Enter', 'a');
    at.show({ ...questionOf('a'), state: 'denied', answeredBy: 'ada\u202e', answer: 'not now' });
    expect(at.press('y', 'a', 'y', 'd', 'Enter')).toBeUndefined();
    expect(at.shown()[0]).toBe('Question #1 was denied by ada\\u202e (not now).');
    at.press('Esc');
    expect(at.shown().join('\n')).toContain('#1 was denied by ada\\u202e (not now): run a');
    expect(at.shown()[0]).toBe('1 question of the tenant t1 waits:');
    // The selection has not moved to another question.
    at.press('Enter');
    expect(at.shown().join('\n')).toContain('Select a question first.');
    at.press('Down', 'Enter');
    expect(at.shown()[0]).toBe('Question #2 waits.');
  });

  test('shows a question again that changes during its approval, except for a new session', () => {
    const at = createScreen(questionOf('a'));
    at.press('Enter', 'a');
    at.show(questionOf('a', { filesWritten: ['/workspace/run.sh'] }));
    expect(at.last()).toBe('It has changed. Read it again before you approve it.');
    expect(at.press('y')).toBeUndefined();
    at.press('a');
    at.show(questionOf('a', { filesWritten: ['/workspace/run.sh'], count: 2 }));
    expect(at.press('y')).toMatchObject({ answer: { approval: { filesWritten: ['/workspace/run.sh'], count: 2 } } });
  });

  test('opens the question with the typed number, and none if that question has ended', () => {
    const at = createScreen(questionOf('a'), questionOf('b'), questionOf('c'));
    at.press('2', 'Enter');
    expect(at.shown()[0]).toBe('Question #2 waits.');
    at.press('Esc', '2');
    at.show({ ...questionOf('b'), state: 'expired' });
    at.press('Enter');
    expect(at.shown().join('\n')).toContain('No question #2 waits.');
    at.show(questionOf('d'));
    at.press('4', 'Enter');
    expect(at.shown()[2]).toBe('question  d, until 2026-01-01T00:10:00.000Z');
  });

  test('denies with the typed reason, and cancels waiting entries only on request', () => {
    const at = createScreen(questionOf('a'));
    at.press('Enter', 'd', ...'noo', 'Backspace', ' ', ...'w');
    expect(at.shown().join(' ')).toContain('(shown in its Result; may be empty): no w_');
    expect(at.press('Esc', 'x', ...'stop', 'Enter')).toEqual({
      type: 'answer',
      answer: { type: 'deny', reason: 'stop', abort: true, approval: questionOf('a') },
    });
    at.screen.sent(false, 'No host accepted the answer. (UNAUTHORIZED)');
    expect(at.last()).toBe('No host accepted the answer. (UNAUTHORIZED)');
    expect(at.press('d', 'Enter')).toMatchObject({ answer: { reason: '', abort: false } });
  });

  test('closes at q in the list of questions, and at Ctrl-C everywhere', () => {
    const at = createScreen(questionOf('a'));
    expect(at.press('Ctrl-C')).toEqual({ type: 'leave' });
    expect(at.press('Enter', 'a', 'Ctrl-C')).toEqual({ type: 'leave' });
    expect(at.press('Esc', 'Esc', 'q')).toEqual({ type: 'leave' });
  });

  test('shows a problem of the fleet above everything until it is solved', () => {
    const at = createScreen(questionOf('a'));
    expect(at.screen.warn('Redis cannot be reached.')).toBe(true);
    expect(at.screen.warn('Redis cannot be reached.')).toBe(false);
    expect(at.shown().slice(0, 2)).toEqual(['! Redis cannot be reached.', '1 question of the tenant t1 waits:']);
    at.press('Enter');
    expect(at.shown().slice(0, 2)).toEqual(['! Redis cannot be reached.', 'Question #1 waits.']);
    expect(at.screen.warn('')).toBe(true);
    expect(at.shown()[0]).toBe('Question #1 waits.');
  });

  test('draws no more rows than a window of any size has', () => {
    const at = createScreen(questionOf('a'), questionOf('b'));
    for (const keys of [[], ['Enter'], ['a'], ['n', 'd']]) {
      at.press(...keys);
      for (let rows = 1; rows < 30; rows += 1)
        for (const columns of [1, 5, 79]) expect(at.screen.draw(rows, columns).length).toBeLessThanOrEqual(rows);
    }
  });
});
