import { describe, expect, test } from 'vitest';
import { createSealKey } from '../seal.ts';
import { RemovalMarks } from './removal-marks.ts';

const [older, newer] = [createSealKey(), createSealKey()];
const chain = { host: 'h', boot: 'b', tenant: 't' };
const marks = new RemovalMarks([older], 'n');
const mark = marks.ofChain(chain, { through: 7, early: 2 });

describe('a mark of removed records', () => {
  test('is read with each key of the fleet', () => {
    expect(new RemovalMarks([newer, older], 'n').readChain(chain, mark)).toEqual({ through: 7, early: 2 });
    expect(marks.readStream(marks.ofStream(1_234))).toBe(1_234);
  });

  test.each([
    ['of another chain', marks, { ...chain, boot: 'c' }, mark],
    ['of another fleet', new RemovalMarks([older], 'm'), chain, mark],
    ['made with another key', new RemovalMarks([newer], 'n'), chain, mark],
    ['that was raised', marks, chain, mark.replace('7', '9')],
    ['of the stream', marks, chain, marks.ofStream(7)],
    ['without a code', marks, chain, '7 2'],
    ['that is none', marks, chain, ''],
  ])('counts as none, if it is one %s', (_, read, of, text) => {
    expect(read.readChain(of, text)).toEqual({ through: 0, early: 0 });
  });
});
