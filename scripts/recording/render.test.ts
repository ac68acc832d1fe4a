import { describe, expect, test } from 'vitest';
import { renderRecording, toLines } from './render.ts';

describe('a recording of a terminal', () => {
  test("has each line at the time of its end, up to the shell's exit", () => {
    const chunks = [
      { atMs: 10, text: '$ ec' },
      { atMs: 20, text: 'ho hi\r\nhi\r\n' },
      { atMs: 30, text: '$ exit\r\nexit\r\n' },
    ];
    expect(toLines(chunks)).toEqual([
      { atMs: 20, text: '$ echo hi' },
      { atMs: 20, text: 'hi' },
    ]);
  });

  test('breaks a line at the width of the terminal', () => {
    expect(renderRecording([{ atMs: 0, text: 'abcde' }], 3)).toMatch(/>abc<.*>de</s);
  });

  test('shows each line from its time on, with special characters escaped', () => {
    const svg = renderRecording([{ atMs: 4_000, text: '$ echo "<&>"' }], 80);
    expect(svg).toContain('@keyframes l0{0%,40.00%{opacity:0}40.001%,100%{opacity:1}}');
    expect(svg).toContain('>$ echo &quot;&lt;&amp;&gt;&quot;</text>');
  });
});
