import { describe, expect, test } from 'vitest';
import { addCounts } from './redactor.ts';

describe('the counts of findings', () => {
  test('are added for a rule that is called as a property of every object', () => {
    expect(addCounts({ email: 1 }, { email: 2, constructor: 3 } as never)).toEqual({ email: 3, constructor: 3 });
    expect(addCounts({ constructor: 1 } as never, { constructor: 3 } as never)).toEqual({ constructor: 4 });
  });
});
