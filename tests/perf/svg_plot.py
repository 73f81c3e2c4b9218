"""Plots as SVG text, for a page that needs nothing but itself."""

import html
import math

WIDTH, HEIGHT = 620, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 34, 48
COLOURS = ("#1f5fa8", "#c4502b", "#3c8a4d", "#8a5fb0", "#9a7b1c", "#2e8f9a", "#b0447c", "#666666",
           "#7aa6d8", "#d89a7a", "#8fc49a", "#bda4d6", "#cdb96a", "#86c3ca", "#d597bb", "#aaaaaa")


def nice_step(span):
    """A step of 1, 2 or 5 times a power of ten, of which about five fit into the span."""
    rough = span / 5 or 1
    power = 10 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)


def short(value):
    for unit, scale in (("M", 1 << 20), ("K", 1 << 10)):
        if value >= scale and value % scale == 0:
            return f"{value // scale:.0f}{unit}"
    return f"{value:g}"


def text(x, y, words, anchor="middle", **more):
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attributes}>'
            f"{html.escape(str(words))}</text>")


def frame(title, x_label, y_label, body):
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    down = TOP + (HEIGHT - TOP - BOTTOM) / 2
    return "\n".join([
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="11">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(middle, 18, title, font_size=14, font_weight="bold"),
        text(middle, HEIGHT - 10, x_label),
        text(16, down, y_label, transform=f"rotate(-90 16 {down:.1f})"), *body, "</svg>"])


def rules(place, values):
    """The lines of an axis."""
    body = []
    for value in values:
        at = place(value)
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" '
                    'stroke="#dddddd"/>')
        body.append(text(LEFT - 6, at + 4, f"{value:g}", "end"))
    return body


def y_axis(top):
    """-> where a value stands, and the lines of the axis from 0 to `top`"""
    step = nice_step(top)
    most = math.ceil(top / step - 1e-9) * step or 1

    def place(value):
        return HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)
    return place, rules(place, [number * step for number in range(round(most / step) + 1)])


def decades(low, high):
    """The same by powers of ten."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)

    def place(value):
        share = (math.log10(value) - first) / (last - first)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    return place, rules(place, [10.0 ** power for power in range(first, last + 1)])


def legend(names):
    body = []
    for number, name in enumerate(names):
        at = TOP + 8 + 16 * number
        colour = COLOURS[number % len(COLOURS)]
        body.append(f'<rect x="{WIDTH - RIGHT + 10}" y="{at - 8}" width="10" height="10" '
                    f'fill="{colour}"/>')
        body.append(text(WIDTH - RIGHT + 26, at + 1, name, "start"))
    return body


def lines(title, x_label, y_label, series, by_decades=False):
    """series: points (x, y) by name; x as its logarithm, y too where it goes by decades."""
    points = [point for row in series.values() for point in row]
    if not points:
        return ""
    xs = sorted({x for x, _ in points})
    low, high = math.log(xs[0]), math.log(xs[-1])

    def across(x):
        share = (math.log(x) - low) / (high - low) if high > low else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)
    ys = [y for _, y in points]
    place, body = decades(min(ys), max(ys)) if by_decades else y_axis(max(ys))
    body += [text(across(x), HEIGHT - BOTTOM + 16, short(x)) for x in xs]
    for number, row in enumerate(series.values()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{place(y):.1f}" for x, y in row)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{across(x):.1f}" cy="{place(y):.1f}" r="3" fill="{colour}">'
                 f"<title>{short(x)}: {y:.4g}</title></circle>" for x, y in row]
    return frame(title, x_label, y_label, body + legend(series))


def bars(title, y_label, stacks):
    """stacks: parts by name, of each bar by its name; parts stand on each other."""
    if not stacks:
        return ""
    totals = {name: sum(parts.values()) for name, parts in stacks.items()}
    every = {}
    for parts in stacks.values():
        for part, value in parts.items():
            every[part] = every.get(part, 0) + value
    names = sorted(every, key=every.get, reverse=True)[:len(COLOURS)]
    place, body = y_axis(max(totals.values()))
    room = (WIDTH - LEFT - RIGHT) / len(stacks)
    for number, (name, parts) in enumerate(stacks.items()):
        left, below = LEFT + room * (number + 0.15), 0
        for part in names:
            value = parts.get(part, 0)
            if value <= 0:
                continue
            top = place(below + value)
            body.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{room * 0.7:.1f}" '
                        f'height="{place(below) - top:.1f}" '
                        f'fill="{COLOURS[names.index(part)]}"><title>{html.escape(part)}: '
                        f"{value:.4g}</title></rect>")
            below += value
        body.append(text(left + room * 0.35, HEIGHT - BOTTOM + 16, name))
    return frame(title, "", y_label, body + legend(names))
