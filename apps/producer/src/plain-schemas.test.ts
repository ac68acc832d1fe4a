import './plain-schemas.ts';
import { expect, test } from 'vitest';
import { config } from 'zod';

test('zod generates no code for the schemas of the command line', () => {
  expect(config()).toMatchObject({ jitless: true });
});
