package sim

// A section is a part of the magazine, and the first segment of its path.
type section struct {
	Path, Name, Line string
}

func sections() []section {
	return []section{
		{"rail", "By rail", "Slow trains, long platforms and the view from the left-hand window."},
		{"water", "By water", "Ferries, harbours and the art of arriving at walking speed."},
		{"foot", "On foot", "Paths that were there before the road was."},
		{"town", "In town", "An afternoon, a market, a room above the square."},
	}
}

// An article of the magazine. Its path is /2026/11/{Slug}/.
type article struct {
	Slug, Section, Title, Stand string
	Day                         int // of November 2026
	Minutes                     int // to read
	Text                        []string
}

// Path is where the article stands.
func (a article) Path() string { return "/2026/11/" + a.Slug + "/" }

// articles are all articles, the latest first.
func articles() []article {
	return []article{
		{
			Slug: "the-last-carriage", Section: "rail", Day: 28, Minutes: 6,
			Title: "In praise of the last carriage",
			Stand: "Everyone crowds to the front of the train. The view is at the back.",
			Text: []string{
				"There is a rule on every platform in the world, and nobody has written it down: people board where they stand, and they stand where the stairs come up. So the middle of the train fills, the front fills next, and the last carriage leaves half empty, with its windows clean on both sides and nobody's suitcase in the aisle.",
				"Walk the extra eighty metres. On a line with curves, and every line worth taking has curves, the last carriage is the only place from which you can watch your own train. It leans into the valley ahead of you, one window after another catching the light, and for a moment you see what the people in the fields see.",
				"The second gift is the rear window. Older stock still has one, with a folding seat beside it that the guard uses between stations. Ask, and you can usually have it. A landscape that comes towards you is a film; a landscape that leaves is a thought. Rails draw together, the tunnel you were in becomes a black coin, and the village whose church you were looking for turns up after you have stopped looking.",
				"There are costs. On a short platform the last carriage may stand in the gravel, and you will learn to ask before the stop and not at it. The trolley reaches you last, when the good sandwiches are gone. The heating, in winter, has its own opinion.",
				"But nobody runs through the last carriage. Nobody stands in its doors with a telephone, waiting to be first on the stairs. Somewhere behind the sixth row the train becomes what it was meant to be, a room that moves, and you are in it with a book, an apple and two hours.",
			},
		},
		{
			Slug: "night-ferry", Section: "water", Day: 26, Minutes: 7,
			Title: "The night ferry, hour by hour",
			Stand: "A crossing is the one kind of travel in which nobody expects you to do anything.",
			Text: []string{
				"Eight in the evening. The ramp is down and the lorries go first, backwards, with a patience that no car driver has. Foot passengers are let on by a door in the side, up a stair that smells of diesel and toast. Nobody asks where you are going; there is only one place.",
				"Ten. The harbour has been sliding past for an hour, cranes, then sheds, then a lighthouse on a wall. On deck it is too cold for everyone but the smokers and one family who have brought blankets and clearly do this every year. The sea is the colour of slate and so is the sky, and the line between them is the only thing to look at. It is enough.",
				"Midnight. The bar shuts with a rattle. In the lounge somebody has stretched out along four seats under a coat. You have a cabin, inside, without a window, and it turns out that a room without a window on a moving ship is the darkest and most comfortable place there is. The engine is a long way down. You hear it the way you hear your own blood.",
				"Four. Everyone wakes at four, because the ship turns. The pitch of everything changes by half a tone. Go up and look: there is nothing, and in the nothing one green light, going the other way.",
				"Seven. Coffee in a paper cup, the deck wet, islands. They arrive the way people come into a room when you are reading, first a sense of someone, then a shape. By the time the ramp is down again you have been nowhere for eleven hours, and you are rested as you have not been since spring.",
			},
		},
		{
			Slug: "one-bag-one-week", Section: "rail", Day: 24, Minutes: 5,
			Title: "One bag, one week, six trains",
			Stand: "A packing list that has been shortened on every journey since the first.",
			Text: []string{
				"The test of a bag is not whether you can carry it. It is whether you can carry it up a stair, at speed, while reading a departure board, without hating yourself. Everything below follows from that.",
				"Two shirts and the one you are wearing. One pullover, wool, dark, that can be a pillow. Trousers that have been rained on before and did not mind. Shoes for walking that a restaurant will let in. You will wash something in a basin on the third evening; take a metre of cord and stop thinking about it.",
				"Paper. A map on which the whole journey fits, because a telephone shows you where you are and never where you could have gone. A timetable of the one line that matters, printed, since the only place without a signal is the junction where you have to change. A book that is slightly too difficult, so that it lasts.",
				"A knife, a spoon, a cloth, a cup. With these four and a market you are at home on any bench in any station, and the people with the eleven-euro sandwich will look at you over it. Salt, in a twist of paper. You will be glad of the salt.",
				"What stays at home is the second of everything. The spare battery, the other coat, the just in case. A railway passes a shop every forty minutes. In ten years of lists the only thing ever truly missed was a corkscrew, and it led to a conversation.",
			},
		},
		{
			Slug: "the-old-post-road", Section: "foot", Day: 22, Minutes: 8,
			Title: "Three days on an old post road",
			Stand: "Before the railway there was a horse, and before the horse a man with a bag. He knew where the water was.",
			Text: []string{
				"A post road is easy to tell from a path made for walkers. It does not climb to see the view. It goes round the hill at one height, patiently, because a loaded animal had to come this way in February, and it meets a spring about as often as you begin to want one.",
				"The first day is mostly woods. The surface is a little better than it needs to be: a kerb of set stones on the outer side, a drain cut across every hundred paces. Somebody built this to last and then a century forgot about it, which is the best thing that can happen to a road.",
				"On the second day it comes out on the open slope, and you see the new road below, with its barriers and its lorries, crossing and recrossing the river as if it had lost something. It needs four bridges to do what the old one does with none. The old one is longer. By evening you will have understood that these are not the same sentence.",
				"Inns stand a day's stage apart, and where the inn has gone there is at least the yard. We slept in two of them. In both, the room looked towards the stables and not at the mountains: the view was work, and nobody wanted more of it after dark.",
				"The third day goes down through chestnuts to a station. The line was opened, says a plate on the wall, and in the same year the post stopped. The platform is exactly as high as the step of a coach. You can stand on it and be, for a moment, on time.",
			},
		},
		{
			Slug: "market-day", Section: "town", Day: 20, Minutes: 4,
			Title: "Arrive on market day",
			Stand: "Plan the whole journey backwards from a Thursday.",
			Text: []string{
				"Most towns are themselves one day in seven. On the other six they are a fine square with cars on it. So before the hotel, before the train, find out which day the market is, and arrive on the evening before.",
				"You will hear it at five: trestles, a van reversing, somebody laughing who has been up since two. Do not get up. The hour you want is between nine and ten, when the cooks have gone and the families have not come, and the man with the goat's cheese has time to cut you a corner of each.",
				"Buy what you cannot name. Ask how to eat it; the whole queue will answer, and will not agree. Take the soup from the place with no sign. Stand at the fountain with it, as everyone does, and look up: for once the upper windows are all open, and there are people in them, looking down at what they will have for lunch.",
				"By one it is over. A machine with brushes comes round, the cars return to the square like a tide, and a single cabbage leaf goes past in the gutter with great dignity. You have seen the town. Anything else is architecture.",
			},
		},
		{
			Slug: "reading-a-harbour", Section: "water", Day: 18, Minutes: 6,
			Title: "How to read a harbour",
			Stand: "Half an hour on the wall will tell you more than a week in the museum.",
			Text: []string{
				"Start with the ropes. A boat that is tied short, with new rope, was here yesterday and is going out tonight. A boat tied long, with a beard of green on the line, belongs to somebody's brother who moved away. Count both kinds and you know how the place is doing.",
				"Then the height of the ladders. The wall tells you the tide without a table: weed to here, barnacles to there, and above that the bleached stone that is wet three times a year. If the steps go on down into the water further than makes sense, wait six hours.",
				"Look for the seat. Every working harbour has one, a plank against a south wall, out of the wind, with a view of the entrance. It is taken from four o'clock on. What is said there is a forecast, a court and a newspaper. You may stand near it. After three days you may be nodded at.",
				"The fish, if there is fish, comes in at a time that everybody knows and nobody will tell you. Watch the gulls instead: they keep office hours. When they go up from the roofs all at once and swing out past the light, you have ten minutes to find a plate.",
			},
		},
		{
			Slug: "the-window-seat", Section: "rail", Day: 16, Minutes: 5,
			Title: "Left-hand window, facing forward",
			Stand: "A short theory of where to sit, tested on every line we could find.",
			Text: []string{
				"Railways follow rivers, and rivers have a good side. The line was laid on whichever bank was cheaper, and the view is on the other, across the water. So the first question is never which class; it is which bank.",
				"The second is the sun. A morning train going south has it on the left, and by the time the light is good you will have the blind down with everyone else on that side. Sit in the shade and look at what the sun is looking at.",
				"Facing forward or back is a matter of temper. Forward is for the first time: you want to know what is coming. Back is for the line you know: things stay in sight longer, and you can say goodbye to them properly.",
				"And the table. A seat with a table is a seat with three strangers, and this can be the best or the longest part of the day. Bring something to share that needs a knife. Nobody has ever been bored at a table on which somebody is cutting up a melon.",
				"All of this can be had for the price of arriving nine minutes early. The trouble with booked seats is not that they are booked. It is that they were given out by something which has never looked out of a window.",
			},
		},
		{
			Slug: "winter-light", Section: "foot", Day: 14, Minutes: 5,
			Title: "Walking in the short light",
			Stand: "In November you have seven hours. It turns out that seven is plenty.",
			Text: []string{
				"In June a walk has no shape. You set out when you like, you come back when you are tired, and the light is the same at both ends. In November the day is a room with a door at either end, and you feel it around you from the first step.",
				"Start in the dark. It is the only way to be given a whole morning: the lane grey, then the gate with a colour, then all at once, on the far ridge, a line as if somebody had run a thumbnail along it. Frost holds the mud together until ten. Use it for the low ground.",
				"Eat at noon, out of the wind, facing south, and eat everything. The hour after that is the one you came for. The sun is so low that every furrow has a shadow and every wall a bright side; a field that is nothing in July has been drawn with a fine pen.",
				"Be down by four. There is a pleasure in the last mile of a winter walk that summer does not know, when the windows light up one by one in the place you are going to. You could be there in ten minutes. You slow down.",
			},
		},
		{
			Slug: "a-room-above-the-square", Section: "town", Day: 12, Minutes: 4,
			Title: "A room above the square",
			Stand: "Ask for the noisy side. You did not come here to sleep.",
			Text: []string{
				"The quiet room looks at a wall, a flue and someone's bicycle. The other has a balcony too small for a chair, and under it the whole evening of a town. They cost the same, and the person at the desk will try to be kind to you. Be firm.",
				"At six the chairs are set out. At seven the grandparents come with the small children; at eight the parents fetch them; at nine it belongs to those of sixteen, who walk round and round it in two directions so as to meet each other twice a lap. By eleven there are two waiters and a dog.",
				"You see who greets whom. You see that the man who shouted in the bakery this morning carries his mother's shopping. You learn the bells: the church is four minutes before the town hall, and always has been, and there was once a vote about it.",
				"Bring earplugs for two o'clock, when the bottles go. Leave the shutters open a hand's breadth. At half past six a bar of light comes across the ceiling, somebody below is hosing down the stones, and you are the first in town to know what kind of day it is.",
			},
		},
		{
			Slug: "the-branch-line", Section: "rail", Day: 9, Minutes: 7,
			Title: "To the end of the branch line",
			Stand: "Two carriages, eleven stops, and a buffer with a geranium on it.",
			Text: []string{
				"The main line does not mention it. You change at a junction where the express barely stops, cross by the footbridge, and there, in a bay at the far end, behind a hedge, is a train of two carriages with its engine running, like a dog that has seen its lead.",
				"The driver sells the tickets. There are eleven stops, five of them by request: you tell him, or you stand on the platform and hold out your arm. At one he waits, because a woman always takes this train on a Friday and she is not there. She comes down the lane at a run. Nobody remarks on it.",
				"It is twenty-two kilometres and takes an hour. Nothing is spectacular. There are orchards, a weir, a school with its football pitch tilted towards the river. A heron stands in the same field in both directions. The line has been going to be closed, says the man opposite, since he was a boy, and he shows with a hand how tall a boy that was.",
				"The end is an end: rails, a buffer, and on the buffer a pot with a geranium. Behind it a road goes on without you. There is a bar in the goods shed with four tables and one dish. You have fifty minutes until the train goes back, and it will not leave without you, since there is nobody else.",
			},
		},
		{
			Slug: "slow-water", Section: "water", Day: 5, Minutes: 5,
			Title: "Four kilometres an hour",
			Stand: "On a canal the towpath overtakes you. That is the point.",
			Text: []string{
				"For the first hour you will be impatient. The engine has one note, the hedge goes by at the pace of a hedge, and a child on the towpath passes you with an ice cream. You look for something to adjust. There is a tiller, and it is adjusted.",
				"Then comes the first lock, and with it the discovery that you can lift a boat of twelve tons by three metres with a handle and a little patience. Water does it. You open a hole and wait; it is the whole of engineering, and a retired postman leans on the gate and tells you that you are doing it quite well.",
				"After that the scale is right. A bridge is an event: it comes round the bend, it has a number, it puts its cool shadow over you from end to end. A village lasts as long as it should. You say good morning to each garden separately.",
				"In the evening you knock two pins into the bank with a hammer and are, legally, at home. The kettle takes the time that kettles take. You have come nineteen kilometres since breakfast, and could draw every one of them.",
			},
		},
		{
			Slug: "the-station-buffet", Section: "town", Day: 2, Minutes: 4,
			Title: "The station buffet at half past ten",
			Stand: "Between two trains there is a third place, with marble and a clock.",
			Text: []string{
				"There are still some. You know one by the door: too tall, brass where hands go, and it swings both ways because half the people who use it are carrying something. Inside are a counter, eleven tables, a mirror the length of the wall and a clock that is right, since here it has to be.",
				"Half past ten is the hour. The commuters have gone and left their newspapers. The express is not until ten past eleven. Who is here now is here on purpose: two women with one suitcase, a man in working clothes eating soup, a boy with a cello that has its own chair.",
				"Order what the kitchen cannot be asked to hurry. The waiter looks at the clock, not at you, and says yes or no; he has been making this calculation since before you could tell the time, and he has never once been wrong by more than a minute. The coffee comes with the bill already under it.",
				"Nobody stays. It is what makes it restful. A café wants you to be someone; a buffet knows that you are on your way, and lets you sit for forty minutes under a painted ceiling, in the company of others who have also not arrived.",
			},
		},
	}
}
