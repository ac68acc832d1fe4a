import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { STATUSES } from './statuses.ts';

describe('the statuses of error codes', () => {
  test('are listed in the document about HTTP', () => {
    const codes = Object.entries(STATUSES);
    const statuses = [...new Set(codes.map(([, status]) => status))].sort((a, b) => a - b);
    const rows = statuses.map((status) => {
      const own = codes.filter((row) => row[1] === status).map(([code]) => `\`${code}\``);
      return `| ${status} | ${own.join(', ')} |`;
    });
    const page = readFileSync(new URL('../../../../docs/http.md', import.meta.url), 'utf8');
    expect(page).toContain(rows.join('\n'));
  });
});
