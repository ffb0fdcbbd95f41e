// Five tulips in a row.   Each: one wash for the cup, two petals over it, a stem.  Ground: one wash.   -> 24 shapes
var SIZE = 600
var tulips = [
  { x: 110, y: 250, h: 1.0, c: '#d9413a', d: '#a8232f' },
  { x: 205, y: 210, h: 1.1, c: '#f0a030', d: '#d9702a' },
  { x: 300, y: 240, h: 1.2, c: '#e86f8a', d: '#b83a62' },
  { x: 395, y: 200, h: 1.05, c: '#8f5aa8', d: '#5f3480' },
  { x: 490, y: 255, h: 0.95, c: '#f3c84a', d: '#dd9a35' }
]

function setup(){
  createCanvas(SIZE, SIZE, WEBGL)
  noLoop()
}

function poly(list, curve){
  brush.beginShape(curve)
  for (var i = 0; i < list.length; i++) { brush.vertex(list[i][0], list[i][1]) }
  brush.endShape(true)
}

function cup(t){
  var w = 46 * t.h, h = 104 * t.h
  brush.fillTexture(0.45, 0.35)
  brush.fillBleed(0.2)
  brush.fill(t.c, 185)
  poly([[t.x, t.y+h*0.5], [t.x-w*0.8, t.y+h*0.3], [t.x-w, t.y-h*0.1], [t.x-w*0.7, t.y-h*0.5], [t.x-w*0.3, t.y-h*0.25], [t.x, t.y-h*0.58],
        [t.x+w*0.3, t.y-h*0.25], [t.x+w*0.72, t.y-h*0.5], [t.x+w, t.y-h*0.1], [t.x+w*0.8, t.y+h*0.3]], 0.4)
  brush.fillBleed(0.12)
  brush.fill(t.d, 150)
  poly([[t.x-w*0.2, t.y+h*0.5], [t.x-w*0.9, t.y+h*0.1], [t.x-w*0.7, t.y-h*0.42], [t.x-w*0.25, t.y]], 0.5)
  poly([[t.x+w*0.2, t.y+h*0.5], [t.x+w*0.9, t.y+h*0.12], [t.x+w*0.72, t.y-h*0.4], [t.x+w*0.3, t.y+h*0.05]], 0.5)
}

function draw(){
  translate(-SIZE/2, -SIZE/2)
  background(250, 248, 242)
  brush.noStroke()

  brush.fillTexture(0.5, 0.2)
  brush.fillBleed(0.4)
  brush.fill(150, 176, 120, 130)
  poly([[30, 520], [200, 496], [400, 500], [570, 520], [560, 580], [300, 590], [40, 580]], 0.4)

  // stems and one long leaf for three of them
  for (var i = 0; i < tulips.length; i++) {
    var t = tulips[i]
    brush.fillBleed(0.05)
    brush.fill('#6f9152', 220)
    poly([[t.x-4, t.y+40], [t.x+4, t.y+40], [t.x+9, 420], [t.x+6, 560], [t.x-6, 560], [t.x-1, 420]], 0.3)
    if (i % 2 == 0) {
      brush.fillBleed(0.15)
      brush.fill('#88a866', 185)
      poly([[t.x+4, 550], [t.x+26, 450], [t.x+52, 360], [t.x+44, 460], [t.x+18, 552]], 0.4)
    }
  }
  for (var k = 0; k < tulips.length; k++) cup(tulips[k])
}
