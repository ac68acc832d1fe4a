import assert from 'node:assert/strict';
import dayjs from 'dayjs';
import utc from 'dayjs/plugin/utc.js';

dayjs.extend(utc);
const leapDay = dayjs.utc('2024-02-29T12:00:00Z');
assert.equal(leapDay.add(1, 'year').format('YYYY-MM-DD'), '2025-02-28');
assert.equal(leapDay.startOf('month').toISOString(), '2024-02-01T00:00:00.000Z');
assert.equal(dayjs.utc('2024-03-01').diff('2024-02-01', 'day'), 29);
assert.equal(dayjs('not a date').isValid(), false);
console.log('counts with leap days');
